"""What was checked, where and with what, to tell this report from another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version

from hookviz.sanity import Report
from hookviz.sanity_report.markup import Markup, joined, name, tag
from hookviz.sanity_report.tables import Column, amount, more, row, table

MOST_IMAGES = 200


def details_section(report: Report) -> Markup:
    """The network, the machine, the thresholds and the images."""
    network = report.network
    known = {
        "name": name(network.name),
        "class": network.class_name,
        "weights": name(network.weights),
        "source": name(network.source),
        "parameters": f"{network.parameters:,}",
        "dtype": network.dtype,
        "device": network.device,
        "sha256": tag("code", network.sha256),
    }
    machine = dict(report.environment.versions) | {"hookviz": hookviz_version(), "machine": report.environment.machine}
    about = report.thresholds.about()
    limits = {
        key.replace("_", " "): joined((f"{amount(value)} ", tag("span", about[key], class_="quiet")))
        for key, value in asdict(report.thresholds).items()
    }
    return tag(
        "section",
        tag("h2", "Details"),
        *(tag("h3", "Network"), _list(known)),
        *(tag("h3", "Environment"), _list(machine)),
        *(tag("h3", "Thresholds"), _list(limits)),
        *_images(report),
        id="details",
    )


def hookviz_version() -> str:
    """The installed version; "not installed" where the folder alone is used."""
    try:
        return version("hookviz")
    except PackageNotFoundError:
        return "not installed"


def _list(values: Mapping[str, object]) -> Markup:
    return tag("dl", *(joined((tag("dt", key), tag("dd", value))) for key, value in values.items()), class_="known")


def _images(report: Report) -> tuple[Markup, ...]:
    if not report.images:
        return ()
    columns = (Column("image"), Column("sha256"))
    rows = [row(columns, (name(one.name), tag("code", one.sha256))) for one in report.images[:MOST_IMAGES]]
    return (
        tag("h3", "Images"),
        table("images", columns, rows),
        more(len(report.images), len(rows), "image"),
    )
