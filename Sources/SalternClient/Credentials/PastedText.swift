/// Leniency for links, invites and codes that a person pastes or types.
///
/// Mail programs, chats and word processors add spaces and line ends, and replace characters by similar ones.
public enum PastedText {
    /// Returns the text without white space and invisible characters at its ends.
    public static func trimmed(_ text: String) -> String {
        let scalars = text.unicodeScalars
        guard let first = scalars.firstIndex(where: { !isBlank($0) }),
            let last = scalars.lastIndex(where: { !isBlank($0) })
        else { return "" }
        return String(scalars[first...last])
    }

    /// Returns a code without white space, invisible characters and hyphens of any kind. Full-width letters and decimal
    /// digits of any script are replaced by ASCII.
    public static func code(_ text: String) -> String {
        var code = String.UnicodeScalarView()
        for scalar in text.unicodeScalars where !isBlank(scalar) && !scalar.properties.isDash && scalar != "\u{ad}" {
            code.append(plain(scalar))
        }
        return String(code)
    }

    /// Normalises a code of the second factor.
    /// - Throws: ``VaultError/wrongCode`` for an empty code, without a request.
    static func oneTimeCode(_ text: String) throws(VaultError) -> String {
        let code = Self.code(text)
        guard !code.isEmpty else { throw .wrongCode }
        return code
    }

    /// Returns true for a character that ends a line or separates words, so that it cannot be part of a key.
    static func isBreak(_ scalar: Unicode.Scalar) -> Bool {
        scalar.properties.isWhitespace || scalar.properties.generalCategory == .control
    }

    private static func isBlank(_ scalar: Unicode.Scalar) -> Bool {
        isBreak(scalar) || scalar.properties.generalCategory == .format
    }

    private static func plain(_ scalar: Unicode.Scalar) -> Unicode.Scalar {
        if scalar.isASCII { return scalar }
        if scalar.properties.generalCategory == .decimalNumber, let value = scalar.properties.numericValue,
            let digit = Unicode.Scalar(UInt32(0x30) + UInt32(value))
        {
            return digit
        }
        // FULLWIDTH EXCLAMATION MARK to FULLWIDTH TILDE.
        if (0xff01...0xff5e).contains(scalar.value) { return Unicode.Scalar(scalar.value - 0xfee0) ?? scalar }
        return scalar
    }
}
