# SPDX-License-Identifier: MIT
# usage: awk -f environment.awk src/env.def tutti.7.in > tutti.7
# Puts a list of the environment variables in place of the line @ENVIRONMENT@.

function roff(text)
{
    gsub(/\\/, "\\e", text)
    gsub(/-/, "\\-", text)
    gsub(/^[.']/, "\\\\\\&&", text)
    return text
}

# The variables' entries of env.def, from a text without comments: C joins neighbouring strings.
function list(text,    entry, name, part, out)
{
    gsub(/"[ \t\n]+"/, "", text)
    out = ""
    while (match(text, /ENV\([A-Z0-9_]+,[ \t\n]*"[^"]*",[ \t\n]*"[^"]*",[ \t\n]*"[^"]*"\)/)) {
        entry = substr(text, RSTART, RLENGTH)
        text = substr(text, RSTART + RLENGTH)
        name = entry
        sub(/^ENV\(/, "", name)
        sub(/,.*/, "", name)
        split(entry, part, "\"")
        out = out ".TP\n.BR " name " =\\fI" roff(part[2]) "\\fR\n" \
            roff(toupper(substr(part[6], 1, 1)) substr(part[6], 2)) ".\n" \
            "Default: " roff(part[4]) ".\n"
        listed++
    }
    return out
}

FNR == NR { definitions = definitions $0 "\n"; entries += /^ENV\(/; next }
$0 == "@ENVIRONMENT@" {
    while (match(definitions, /\/\*([^*]|\*+[^*\/])*\*+\//))
        definitions = substr(definitions, 1, RSTART - 1) substr(definitions, RSTART + RLENGTH)
    printf "%s", list(definitions)
    next
}
{ print }
END {
    if (listed != entries || listed == 0) {
        print "environment.awk: " listed + 0 " of " entries " variables understood" > "/dev/stderr"
        exit 1
    }
}
