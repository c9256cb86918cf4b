#!/bin/sh
# Starts Chromium without two hidden pages in each window, for its address bar: they cost a second
# of processor time. The last --disable-features counts, so Playwright's own one is extended.
for argument do
  shift
  case $argument in
    --disable-features=*) argument=$argument,WebUIOmniboxPopup,WebUIOmniboxAimPopup ;;
  esac
  set -- "$@" "$argument"
done
exec "$CHROMIUM" "$@"
