"""``python -m focuscrawl``."""

try:
    from focuscrawl.cli.main import main
except KeyboardInterrupt:  # Ctrl-C during the imports; see `OneLineErrorGroup.invoke`
    raise SystemExit(130) from None

main(prog_name="focuscrawl")
