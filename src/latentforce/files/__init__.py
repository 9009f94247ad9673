"""Models as files: arrays in safetensors, everything else in a JSON header; nothing in them is ever executed."""
