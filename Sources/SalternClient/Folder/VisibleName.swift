/// Converts names of files to text, including those that are not UTF-8.
enum VisibleName {
    /// Returns the name with each byte that is not UTF-8 written as `\xNN`.
    static func text(_ bytes: [UInt8]) -> String {
        if let text = String(validating: bytes, as: UTF8.self) { return text }
        var text = ""
        var rest = bytes[...]
        while let first = rest.first {
            // A scalar has at most four bytes.
            let scalar = (1...4).lazy.compactMap { String(validating: rest.prefix($0), as: UTF8.self) }.first
            if let scalar, !scalar.isEmpty {
                text += scalar
                rest = rest.dropFirst(scalar.utf8.count)
            } else {
                let digits = String(first, radix: 16)
                text += "\\x" + (digits.count < 2 ? "0" : "") + digits
                rest = rest.dropFirst()
            }
        }
        return text
    }
}
