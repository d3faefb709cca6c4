# Completion of zorilla for fish: zorilla completion fish | source
function __zorilla_complete
	set -l words (commandline -opc) (commandline -ct)
	$words[1] __complete $words[2..-1] 2>/dev/null
end
complete -c zorilla -n 'count (__zorilla_complete) >/dev/null' -f -a '(__zorilla_complete)'
