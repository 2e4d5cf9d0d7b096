"""The page as ``hookviz app`` starts it, which has imported what it stands on by then."""

import streamlit as st

from hookviz.ui.main import run

# An emoji as icon: a :material: one would be fetched from Google's servers by every visitor.
st.set_page_config(page_title="hookviz", page_icon="🔬", layout="wide")
run()
