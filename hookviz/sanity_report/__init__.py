"""A check's report as a page: findings first, then everything that was measured."""

from hookviz.sanity_report.card import report_card
from hookviz.sanity_report.document import report_html

__all__ = ["report_card", "report_html"]
