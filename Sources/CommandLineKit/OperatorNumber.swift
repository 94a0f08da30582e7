/// A whole number as operators write it, which is one way only: digits, with no plus and no zero in front.
package enum OperatorNumber {
    /// Reads one; nil when the text is none. `Int` alone reads signs and zeros in front as well.
    package static func integer(_ text: some StringProtocol) -> Int? {
        guard let number = Int(text), String(number) == text else { return nil }
        return number
    }
}
