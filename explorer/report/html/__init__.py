"""The report as one HTML file that opens anywhere, offline."""

from explorer.report.html.page import html_report

__all__ = ["html_report"]
