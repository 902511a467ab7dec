"""Doors to other libraries. Importing this loads none of them; `rmjax.interop.flax` loads Flax."""
