from __future__ import annotations

import ast
import pickle
import re
import shutil
import socket
import subprocess
import sys
import sysconfig
import time
import tomllib
import urllib.request
import zipfile
from email.parser import Parser
from importlib.metadata import packages_distributions, version
from pathlib import Path
from typing import Any

import pytest
import torch
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from torch import nn

import hookviz

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
CHECK = "pip install -r requirements-dev.txt && pytest"


def requirements() -> list[str]:
    lines = (line.strip() for line in (ROOT / "requirements.txt").read_text("utf-8").splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def fenced(text: str, language: str = "") -> list[str]:
    blocks: list[str] = re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    return blocks


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


# What is declared


def test_there_is_one_list_of_requirements() -> None:
    declared = project()
    assert declared["project"]["dynamic"] == ["dependencies"]
    assert declared["tool"]["setuptools"]["dynamic"] == {"dependencies": {"file": ["requirements.txt"]}}
    assert (ROOT / "requirements-dev.txt").read_text("utf-8").count("-r requirements.txt\n") == 1


def test_everything_imported_is_required_and_everything_required_is_imported() -> None:
    imported: set[str] = set()
    for path in [ROOT / "app.py", *(ROOT / "hookviz").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                imported.update(alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                imported.add(str(node.module).partition(".")[0])
    extras = {
        Requirement(line).name for lines in project()["project"]["optional-dependencies"].values() for line in lines
    }
    assert extras <= imported
    foreign = imported - sys.stdlib_module_names - {"hookviz"} - extras
    providers = packages_distributions()
    packages = {canonicalize_name(name) for module in foreign for name in providers[module]}
    assert packages == {canonicalize_name(Requirement(line).name) for line in requirements()}


def test_every_requirement_has_a_lower_bound_that_is_met_here() -> None:
    for line in requirements():
        required = Requirement(line)
        assert {one.operator for one in required.specifier} & {">=", "=="}, line
        assert version(required.name) in required.specifier, line


def test_the_command_and_the_type_marker_are_there() -> None:
    assert project()["project"]["scripts"] == {"hookviz": "hookviz.cli:main"}
    assert (ROOT / "hookviz" / "py.typed").read_bytes() == b""


def test_every_setting_has_a_reason_above_it() -> None:
    lines = (ROOT / ".streamlit" / "config.toml").read_text("utf-8").splitlines()
    settings = [number for number, line in enumerate(lines) if "=" in line and not line.startswith("#")]
    assert len(settings) >= 6
    assert [lines[number] for number in settings if not lines[number - 1].startswith("# ")] == []


def test_the_file_watcher_and_usage_statistics_are_off() -> None:
    settings = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text("utf-8"))
    assert settings["server"]["fileWatcherType"] == "none"
    assert settings["browser"]["gatherUsageStats"] is False


def test_ci_runs_the_readme_s_check_and_the_commit_hooks() -> None:
    lines = (ROOT / ".ci" / "run").read_text("utf-8").splitlines()
    entries = re.findall(r"entry: (.*)", (ROOT / ".pre-commit-config.yaml").read_text("utf-8"))
    assert entries == ["ruff format --check .", "ruff check .", "mypy"]
    for command in [*entries, *CHECK.split(" && ")]:
        assert command in lines


# What the README says


def test_the_first_screen_has_a_picture_and_exactly_two_commands() -> None:
    first_screen = README.partition("\n## ")[0]
    pictures = re.findall(r"!\[.+\]\((.+)\)", first_screen)
    assert pictures == ["docs/page.png"]
    assert (ROOT / pictures[0]).read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert fenced(first_screen) == ["pip install -r requirements.txt && streamlit run app.py\n", f"{CHECK}\n"]
    assert len(first_screen.splitlines()) <= 20


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs/hosting.md"])
def test_every_link_into_the_tree_leads_somewhere(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    targets = [target for target in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in target]
    assert [target for target in targets if not (ROOT / page).parent.joinpath(target).exists()] == []


def test_every_name_of_hookviz_in_the_readme_exists() -> None:
    names = set(re.findall(r"\bhookviz((?:\.[a-z_]\w*)+)", README))
    assert {".record", ".load_model", ".views.channel_grid_figure"} <= names
    for name in names:
        found: object = hookviz
        for part in name.strip(".").split("."):
            found = getattr(found, part)


def test_the_notebook_code_runs_without_streamlit_and_records_what_torch_computes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = fenced(README, "python")
    assert len([line for line in blocks[0].splitlines() if line and not line.startswith("import ")]) <= 10
    names: dict[str, Any] = {}
    for block in blocks:
        assert "streamlit" not in block
        exec(compile(block, "README.md", "exec"), names)  # noqa: S102  # the README's own code is what is tested
    network = names["model"].module
    with torch.no_grad():
        assert torch.equal(names["stem"], network.conv_stem(names["model"].prepare(names["image"])))
    assert (tmp_path / "conv_stem.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    printed = capsys.readouterr().out
    assert "military uniform" in printed
    assert "torch.Size([1, 1280, 7, 7])" in printed
    assert "layer1.0.relu ReLU ((1, 64, 56, 56), (1, 64, 56, 56)) 2\n" in printed


def headings() -> list[str]:
    return re.findall(r"^### `(.+)`$", README, flags=re.MULTILINE)


def message(heading: str) -> str:
    """A pattern for the heading's text, in which the layer's name may be another."""
    return re.escape(heading).replace(re.escape("layer1.0.relu"), ".*")


def raise_view_modified_in_place() -> None:
    linear = nn.Linear(2, 2)
    linear.register_full_backward_hook(lambda *_: None)
    linear(torch.ones(1, 2)).relu_()


def raise_no_gradient() -> None:
    with torch.no_grad():
        output = nn.Linear(2, 1)(torch.ones(1, 2))
    torch.autograd.backward(output)


def raise_cannot_pickle() -> None:
    linear = nn.Linear(2, 2)
    linear.register_forward_hook(lambda *_: None)
    pickle.dumps(linear)


def raise_ambiguous_call() -> None:
    network = nn.Sequential(relu := nn.ReLU(), relu)
    with hookviz.record(network) as rec:
        network(torch.ones(1))
    _ = rec["0"].output


@pytest.mark.parametrize(
    ("number", "fail"),
    [(0, raise_view_modified_in_place), (1, raise_no_gradient), (2, raise_cannot_pickle), (5, raise_ambiguous_call)],
)
def test_troubleshooting_is_headed_by_what_a_person_reads(number: int, fail: Any) -> None:
    with pytest.raises(Exception, match=message(headings()[number])):
        fail()


# The wheel

COMPONENTS = sorted(path.stem for path in (ROOT / "hookviz" / "ui").glob("*.html"))
"""Each has its markup, its style and its script."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy of the tree, since building leaves folders behind."""
    tree = tmp_path_factory.mktemp("source") / "tree"
    left_out = shutil.ignore_patterns(".git", ".*_cache", "__pycache__", ".venv", "build", "dist", "*.egg-info")
    shutil.copytree(ROOT, tree, ignore=left_out)
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "pip", "wheel", ".", "--no-deps", "-q", "-w", folder], cwd=tree, check=True)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of a fresh environment with the wheel, which finds everything else in this one."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    (own,) = folder.glob("lib/python*/site-packages")
    (own / "requirements.pth").write_text(sysconfig.get_path("purelib") + "\n", "utf-8")
    install: list[str | Path] = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "-q",
        "--no-deps",
        "--no-index",
        wheel,
    ]
    subprocess.run(install, check=True)
    return python.parent


def run(command: list[str | Path], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_wheel_holds_the_package_its_data_and_nothing_else(wheel: Path) -> None:
    sources = {f"hookviz/{path.relative_to(ROOT / 'hookviz')}" for path in (ROOT / "hookviz").rglob("*.py")}
    data = {f"hookviz/assets/{path.name}" for path in (ROOT / "assets").iterdir()}
    components = {f"{name}.{suffix}" for name in COMPONENTS for suffix in ("html", "css", "js")} | {"channel_wire.js"}
    data |= {f"hookviz/ui/{name}" for name in components}
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
        (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        told = Parser().parsestr(archive.read(metadata).decode())
    assert held == {*sources, *data, "hookviz/py.typed", "hookviz/streamlit_config/config.toml"}
    declared = {str(Requirement(line)) for line in told.get_all("Requires-Dist", []) if "extra ==" not in line}
    assert declared == {str(Requirement(line)) for line in requirements()}


@pytest.mark.slow
def test_an_installed_hookviz_reads_a_digit_away_from_the_source_tree(installed: Path, tmp_path: Path) -> None:
    code = (
        "import hookviz; model = hookviz.load_model('simple_cnn'); print(hookviz.__file__);"
        "print(*(model.predict(hookviz.load_sample(f'digit_{n}'))[0].label for n in (3, 8)))"
    )
    file, labels = run([installed / "python", "-c", code], tmp_path).splitlines()
    assert Path(file).is_relative_to(installed.parent)
    assert labels == "3 8"


@pytest.mark.slow
def test_an_installed_command_lists_layers_and_knows_its_version(installed: Path, tmp_path: Path) -> None:
    assert run([installed / "hookviz", "--version"], tmp_path) == f"hookviz {project()['project']['version']}\n"
    listed = run([installed / "hookviz", "layers", "simple_cnn"], tmp_path)
    assert [line.split()[0] for line in listed.splitlines()[2:]] == ["conv1", "pool", "conv2", "fc1", "fc2"]


@pytest.mark.slow
def test_the_page_runs_from_an_installed_hookviz(installed: Path, tmp_path: Path) -> None:
    code = (
        "import pathlib, hookviz; from streamlit.testing.v1 import AppTest;"
        "start = pathlib.Path(hookviz.__file__).parent / 'ui' / 'start.py';"
        "page = AppTest.from_file(str(start), default_timeout=200).run();"
        "print(len(page.exception), len(page.error), page.selectbox(key='model').value)"
    )
    assert run([installed / "python", "-c", code], tmp_path).splitlines()[-1] == "0 0 efficientnet_lite0"


@pytest.mark.slow
def test_the_installed_app_serves_from_an_empty_folder(installed: Path, tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command: list[str | Path] = [installed / "hookviz", "app", "--port", str(port), "--", "--server.headless", "true"]
    # Its output goes nowhere, not into a pipe: Streamlit does not stop when it cannot print that it does.
    server = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL)
    try:
        assert answer(f"http://127.0.0.1:{port}/_stcore/health", server) == "ok"
        assert list(tmp_path.iterdir()) == []
        server.terminate()
        assert server.wait(timeout=60) == 0
    finally:
        server.kill()
        server.wait()


def answer(address: str, server: subprocess.Popen[bytes]) -> str:
    deadline = time.monotonic() + 120
    while True:
        try:
            with urllib.request.urlopen(address, timeout=5) as response:  # noqa: S310  # our own server
                text: str = response.read().decode()
                return text
        except OSError:
            assert server.poll() is None, "the server ended"
            assert time.monotonic() < deadline, "the server did not answer within two minutes"
            time.sleep(0.2)


def test_behind_a_proxy_protection_stays_on_and_the_limits_agree() -> None:
    """C74: the documented set-up lets the page's largest upload through, and turns nothing off."""
    settings = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text("utf-8"))
    assert settings["server"].get("enableXsrfProtection", True) is True
    assert settings["server"].get("enableCORS", True) is True
    (allowed,) = re.findall(r"client_max_body_size (\d+)m;", (ROOT / "docs" / "hosting.md").read_text("utf-8"))
    assert int(allowed) > settings["server"]["maxUploadSize"]
