/// Splits a text of SQL into statements.
enum ScriptText {
    /// Returns the statements in order, each with the comments before it and its semicolon.
    ///
    /// It skips comments, strings, quoted names and dollar quotes (PostgreSQL, Lexical Structure). It does not support
    /// nested comments and unquoted bodies of functions (`BEGIN ATOMIC`).
    static func statements(of text: String) -> [Substring] {
        let token =
            #/
            (?<blank> \s+ | --[^\n]* | /\*(?s:.*?)\*/ )
            | (?<end> ; )
            | [eE]'(?: [^'\\] | \\. | '' )*' | '[^']*' | "[^"]*" | \$(?<tag>\w*)\$(?s:.*?)\$\k<tag>\$ | \w[\w$]* | .
            /#
        var statements: [Substring] = []
        var (start, hasContent) = (text.startIndex, false)
        for match in text.matches(of: token) {
            hasContent = hasContent || match.blank == nil && match.end == nil
            guard match.end != nil else { continue }
            if hasContent { statements.append(text[start..<match.range.upperBound]) }
            (start, hasContent) = (match.range.upperBound, false)
        }
        return hasContent ? statements + [text[start...]] : statements
    }
}
