"""The page: ``streamlit run app.py``. Streamlit imports this as its server starts, then runs it for every visitor."""

from pathlib import Path
from runpy import run_path

import streamlit as st

# Run by its path: importing it would import hookviz first, and with it torch.
starting = run_path(str(Path(__file__).parent / "hookviz" / "ui" / "starting.py"))

if __name__ == "__main__":
    # An emoji as icon: a :material: one would be fetched from Google's servers by every visitor.
    st.set_page_config(page_title="hookviz", page_icon="🔬", layout="wide")
    with starting["while_importing"]():
        from hookviz.ui.main import run
    run()
else:
    app = st.App(__file__, lifespan=starting["lifespan"])
