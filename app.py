"""The page: ``streamlit run app.py``."""

import streamlit as st

from hookviz.ui.main import run

st.set_page_config(page_title="hookviz", page_icon=":material/visibility:", layout="wide")
run()
