"""The catalogue that ships with Proctor: an invented one, indexed when it is first needed and kept."""

import hashlib
import os
from pathlib import Path

from environments.webshop.catalogue.make import make
from environments.webshop.catalogue.nouns import extractor
from environments.webshop.catalogue.published import files_in
from environments.webshop.catalogue.store import FORMAT

SAMPLES = Path(__file__).with_name("samples")


def catalogue(cache: Path | None) -> Path:
    """The folder of the shipped catalogue, made where it isn't there yet: about a second of work.

    `cache` is where it is kept (None for `proctor/webshop` in the user's folder for caches). Processes that make it at
    the same time end with the same one. Raises ValueError where it can't be written.
    """
    nouns, files = extractor("lexical"), files_in(SAMPLES)
    state = hashlib.blake2b(f"{FORMAT} {nouns.name} {nouns.version}".encode(), digest_size=8)
    for path in files.paths():
        state.update(path.read_bytes())
    folder = (cache or _default_folder()) / state.hexdigest()
    if not folder.is_dir():
        try:
            make(files, folder, nouns)
        except OSError as error:
            if not folder.is_dir():
                raise ValueError(f"{folder}: can't keep a catalogue: {error}; set `cache` to another folder") from error
    return folder


def _default_folder() -> Path:
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches) / "proctor" / "webshop"
