#compdef zorilla
# Completion of zorilla for zsh: source <(zorilla completion zsh)
_zorilla() {
	local -a candidates
	local candidate help
	while IFS=$'\t' read -r candidate help; do
		candidates+=("${candidate//:/\\:}${help:+:$help}")
	done < <("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)
	if (( ${#candidates} )); then
		_describe zorilla candidates
	else
		_files
	fi
}
if [[ $funcstack[1] == _zorilla ]]; then
	_zorilla "$@"
else
	compdef _zorilla zorilla
fi
