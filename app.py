"""The page: ``streamlit run app.py``. Streamlit imports this as its server starts, then runs it for every visitor."""

import streamlit as st

if __name__ == "__main__":
    from hookviz.ui.main import run

    # An emoji as icon: a :material: one would be fetched from Google's servers by every visitor.
    st.set_page_config(page_title="hookviz", page_icon="🔬", layout="wide")
    run()
else:
    from pathlib import Path
    from runpy import run_path

    # Not imported from hookviz, which would import torch first, and the server is not to wait for that.
    lifespan = run_path(str(Path(__file__).parent / "hookviz" / "ui" / "lifespan.py"))["lifespan"]
    app = st.App(__file__, lifespan=lifespan)
