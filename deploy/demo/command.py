"""``nstorm demo``: runs the demo, and prints what came of it."""

import typer
from rich.console import Console

from controller.errors import CommandError


def demo() -> None:
    """Show nstorm at work, live, and write a report with a picture.

    Starts a Storm cluster with a WordCount, lets the controller move executors, and measures
    before and after; under 5 minutes. The report is left in build/demo. Ctrl-C ends it cleanly.
    """
    try:
        # Late: agents and controllers need no matplotlib, and it takes long to load.
        from deploy.demo.play import OUT_DIR, run_demo  # noqa: PLC0415
        from deploy.demo.report import lines  # noqa: PLC0415
        from deploy.demo.screen import Screen  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise CommandError(f"the demo needs {error.name}: pip install 'nstorm[lab]'") from None
    console = Console()
    with Screen(console) as screen:
        report = run_demo(screen)
    for line in lines(report):
        typer.echo(line)
    typer.echo(f"written: {OUT_DIR / 'report.json'} and {OUT_DIR / 'report.png'}")
