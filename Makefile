.types:
	mkdir -p .types/foveate
	for room in app bench configs cuda pipeline; do ln -sfn ../../$$room .types/foveate/$$room; done
