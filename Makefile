# For those whose fingers type make. Everything is in dev.py: python3 dev.py help
COMMANDS = demo test lint docs bench chaos doctor shell clean help

.PHONY: $(COMMANDS)
.DEFAULT_GOAL := help

$(COMMANDS):
	@python3 dev.py $@ $(ARGS)
