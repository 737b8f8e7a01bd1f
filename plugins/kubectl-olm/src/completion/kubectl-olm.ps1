# PowerShell completion (7.3 and newer) of kubectl-olm. The candidates come from "kubectl-olm __complete".
Register-ArgumentCompleter -Native -CommandName kubectl-olm -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $before = @($commandAst.CommandElements | Select-Object -Skip 1 |
        Where-Object { $_.Extent.EndOffset -lt $cursorPosition } | ForEach-Object { $_.ToString() })
    kubectl-olm __complete @before "$wordToComplete" 2>$null | Where-Object { $_ -notmatch '^:\d$' } | ForEach-Object {
        $value, $about = $_ -split "`t", 2
        if (-not $about) { $about = $value }
        [System.Management.Automation.CompletionResult]::new($value, $value, 'ParameterValue', $about)
    }
}
