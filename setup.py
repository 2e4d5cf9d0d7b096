"""Which folders are packages; everything else about the package is in pyproject.toml."""

from setuptools import find_packages, setup

# Here, since pyproject.toml either finds packages or lists them, and these are found but for two. The tree keeps those
# two where a reader and Streamlit look for them; a wheel has no top level, so there they travel inside the package.
MAPPED = {"hookviz.assets": "assets", "hookviz.streamlit_config": ".streamlit"}

setup(packages=[*find_packages(include=["hookviz", "hookviz.*"]), *MAPPED], package_dir=MAPPED)
