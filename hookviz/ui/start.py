"""The page as an installed package starts it; the same as app.py at the top of the source tree."""

import streamlit as st

from hookviz.ui.main import run

st.set_page_config(page_title="hookviz", page_icon=":material/visibility:", layout="wide")
run()
