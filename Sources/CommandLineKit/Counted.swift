/// Returns a number with its noun, in the singular for 1: "1 session", "2 sessions".
/// - Parameter plural: The noun's plural; nil for the singular with an `s`.
package func counted(_ number: some BinaryInteger, _ singular: String, _ plural: String? = nil) -> String {
    "\(number) " + (number == 1 ? singular : plural ?? singular + "s")
}
