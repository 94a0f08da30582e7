/// A text of SQL, as its statements.
enum ScriptText {
    /// The statements in order, each with the semicolon that ends it, and with the comments before it.
    ///
    /// Comments, strings, quoted names and dollar quotes are passed over (PostgreSQL, Lexical Structure); comments in comments
    /// and bodies of functions without quotes (`BEGIN ATOMIC`) are not known.
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
