# Completion of zorilla for bash: source <(zorilla completion bash)
_zorilla() {
	local line=${COMP_LINE:0:COMP_POINT} words candidate cut part
	read -ra words <<<"$line"
	[[ $line == *[[:space:]] ]] && words+=("")
	local last=${words[${#words[@]} - 1]}
	# bash completes what comes after the last of these characters.
	cut=
	for part in @ : =; do
		if [[ $COMP_WORDBREAKS == *"$part"* && $last == *"$part"* ]]; then
			local to=${last%"$part"*}$part
			[[ ${#to} -gt ${#cut} ]] && cut=$to
		fi
	done
	COMPREPLY=()
	while IFS=$'\t' read -r candidate _; do
		COMPREPLY+=("${candidate#"$cut"}")
	done < <("${words[0]}" __complete "${words[@]:1}" 2>/dev/null)
	if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[:/] ]]; then
		compopt -o nospace
	fi
}
complete -o bashdefault -o default -F _zorilla zorilla
