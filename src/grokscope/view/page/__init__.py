"""One HTML file that shows a folder of runs, and the same page live while they train."""

from grokscope.view.page.html import page_of, reject_other_file, write_page
from grokscope.view.page.sources import ShownRun, Source, source_of

__all__ = ["ShownRun", "Source", "page_of", "reject_other_file", "source_of", "write_page"]
