/// A whole number as operators write it, in one form only: digits, without plus sign and leading zeros.
package enum OperatorNumber {
    /// Reads a number, or returns nil for other text. `Int` alone also accepts signs and leading zeros.
    package static func integer(_ text: some StringProtocol) -> Int? {
        guard let number = Int(text), String(number) == text else { return nil }
        return number
    }
}
