# fish completion of kubectl-olm. The candidates come from "kubectl-olm __complete".
function __kubectl_olm_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program $words[1]
    set -e words[1]
    set -l lines ($program __complete $words "$current" 2>/dev/null)
    for line in $lines
        string match -qr '^:[0-9]$' -- $line; or echo -- $line
    end
    if test (count $lines) -eq 1; and contains -- $lines[1] :0 :2
        __fish_complete_path $current
    end
end
complete -c kubectl-olm -f -a '(__kubectl_olm_complete)'
