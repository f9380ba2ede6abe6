"""The generated catalogue shipped with Proctor; it is indexed at its first use and then kept."""

import hashlib
from pathlib import Path

from environments.webshop.catalogue.make import make
from environments.webshop.catalogue.nouns import extractor
from environments.webshop.catalogue.published import files_in
from environments.webshop.catalogue.store import FORMAT
from proctor.environment import default_folder

SAMPLES = Path(__file__).with_name("samples")


def catalogue(cache: Path | None) -> Path:
    """The folder of the shipped catalogue. If it does not exist, it is made in about a second.

    `cache`: its parent folder; None for `proctor/webshop` in the user's cache folder. Processes that make it at the
    same time get the same folder. Raises ValueError if it can't be written.
    """
    nouns, files = extractor("lexical"), files_in(SAMPLES)
    state = hashlib.blake2b(f"{FORMAT} {nouns.name} {nouns.version}".encode(), digest_size=8)
    for path in files.paths():
        state.update(path.read_bytes())
    folder = (cache or default_folder("webshop")) / state.hexdigest()
    if not folder.is_dir():
        try:
            make(files, folder, nouns)
        except OSError as error:
            if not folder.is_dir():
                raise ValueError(f"{folder}: can't keep a catalogue: {error}; set `cache` to another folder") from error
    return folder
