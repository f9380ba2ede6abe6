"""The controller: places sessions on workers."""
