# shellcheck shell=bash disable=SC2016,SC2154
# The blocks of the admin pages by name: the section, the kind unless it is commands ("text" when it has none), a number.

# In the order in which their commands are typed.
handbook_pages=(
    install configure certificates-and-keys proxies operate monitor backup-restore upgrade high-availability cluster troubleshoot
)

# handbook_page NAME…: the paths of these pages, or of all.
handbook_page() {
    local name
    for name in "${@:-"${handbook_pages[@]}"}"; do printf '%s\n' "$repository/docs/admin/$name.md"; done
}

# handbook_blocks FOLDER: the block whose name is the Nth line of FOLDER/blocks is FOLDER/block-N; so is its kind, in
# FOLDER/kinds.
handbook_blocks() {
    local pages twice
    mapfile -t pages < <(handbook_page)
    awk -v folder="$1" '
        FNR == 1 { inside = 0; section = ""; split("", count) }
        /^#/ && !inside { section = $0; sub(/^#+ /, "", section); split("", count) }
        /^```/ {
            if (inside) { inside = 0; close(file); next }
            inside = 1
            kind = substr($0, 4) " "
            if (kind == " ") { kind = "text " }
            if (kind == "sh " || kind == "bash ") { kind = "" }
            file = folder "/block-" ++number
            printf "" > file
            count[kind]++
            print kind > (folder "/kinds")
            print section " " kind count[kind] > (folder "/blocks")
            next
        }
        inside { print > file }' "${pages[@]}"
    twice=$(sort -- "$1/blocks" | uniq --repeated)
    [[ -z $twice ]] || die "blocks of two pages have the same name: $twice"
}

# handbook_block NAME: its lines.
handbook_block() (
    folder=$(mktemp --directory)
    handbook_blocks "$folder"
    number=$(grep --line-number --line-regexp --fixed-strings -- "$1" "$folder/blocks") || number=
    [[ -z $number ]] || cat -- "$folder/block-${number%%:*}"
    rm -rf -- "$folder"
    [[ -n $number ]] || die "there is no block $1 in docs/admin"
)

# handbook_archive REPOSITORY DATA LOCK: the handbook's file for pgBackRest, with these folders and a passphrase.
handbook_archive() {
    handbook_block 'Point-in-time recovery ini 1' | sed "s|/var/lib/pgbackrest|$1|
        s|…  *# \(openssl .*\)|$(openssl rand -base64 48 | tr -d '\n')|; s|^pg1-path=.*|pg1-path=$2|
        /^\[saltern\]/i lock-path=$3\nlog-level-file=off\nlog-level-console=warn"
}

# handbook_spans: what the text has in backticks, a line each.
handbook_spans() {
    handbook_page | xargs sed '/^```/,/^```$/d' | tr '\n' ' ' | grep --only-matching '`[^`]*`' | tr -d '`' |
        sed 's/  */ /g; s/\\|/|/g' | sort --unique
}

# handbook_commands: every row of the section "Commands", with all words: `saltern account list`, `show USERID` is
# `saltern account show USERID`, too.
handbook_commands() {
    sed -n '/^## Commands$/,/^## /s/^| \(`saltern [^|]*\(\\|[^|]*\)*\) | .*/\1/p' "$(handbook_page operate)" | awk -F '`' '{
        print $2
        group = $2
        sub(/ [^a-z].*/, "", group)
        sub(/ [a-z-]*$/, "", group)
        for (field = 4; field <= NF; field += 2) { print group " " $field }
    }' | sed 's/\\|/|/g'
}

# handbook_events: those of the log that the section "Log events" lists, a line each.
handbook_events() {
    sed -n '/^## Log events$/,/^## /s/^| \(`[^|]*\) | .*/\1/p' "$(handbook_page monitor)" |
        grep --only-matching '`[a-z_]*`' | tr -d '`' | sort --unique
}
