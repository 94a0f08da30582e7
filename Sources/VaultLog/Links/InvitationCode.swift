public import Cryptography

/// The code of an invitation: six words, 66 bits. It reaches the invited person by another way than the link.
public struct InvitationCode: Sendable {
    /// The reason for which a text is no code.
    public enum Malformation: Error, Hashable, Sendable {
        /// The text has another number of words than six.
        case wrongCount(Int)
        /// The list does not contain the word at this position, from 1.
        case unknownWord(position: Int)
    }

    /// The number of words.
    public static let wordCount = 6

    /// Six words in lower case with single spaces, as ASCII.
    public let text: SecureBytes

    /// Draws a code.
    public static func random() -> InvitationCode {
        let words = SecureRandom.secureBytes(2 * wordCount).withUnsafeBytes { bytes in
            stride(from: 0, to: 2 * wordCount, by: 2).map { index in
                // 2,048 divides 65,536, so each word has the same probability.
                CodeWords.word(UInt16(bytes[index]) << 8 | UInt16(bytes[index + 1]))
            }
        }
        return InvitationCode(words: words)
    }

    /// Reads typed text. Case, white space, hyphens, commas and points between words do not matter.
    public init(_ typed: String) throws(Malformation) {
        let words = typed.lowercased().split { $0.isWhitespace || "-–,.".contains($0) }.map(String.init)
        guard words.count == Self.wordCount else { throw .wrongCount(words.count) }
        for (index, word) in words.enumerated() where CodeWords.index(of: word) == nil {
            throw .unknownWord(position: index + 1)
        }
        self.init(words: words)
    }

    private init(words: [String]) { text = SecureBytes(copying: words.joined(separator: " ").utf8) }
}

/// The 2,048 words of codes and comparisons: the English list of BIP-39, sorted. The first four letters of each are
/// its own.
///
/// Source: https://github.com/bitcoin/bips/tree/master/bip-0039, in the MIT-licensed package `mnemonic` of
/// Pavol Rusnak (https://github.com/trezor/python-mnemonic).
enum CodeWords {
    static let count = 2_048
    /// The bits of one word.
    static let bitCount = 11

    /// The words, in order.
    static let all = PackageResources.code_words_txt.split(separator: UInt8(ascii: "\n"))
        .map { String(decoding: $0, as: UTF8.self) }

    private static let indices = Dictionary(uniqueKeysWithValues: zip(all, all.indices))

    /// Returns the word with a number; its remaining bits count only.
    static func word(_ number: UInt16) -> String { all[Int(number) % count] }

    /// Returns the number of a word.
    static func index(of word: String) -> Int? { indices[word] }

    /// Returns the words that the first bits stand for, the most significant first.
    /// - Parameter bytes: At least `count` times 11 bits.
    static func words(in bytes: [UInt8], count: Int) -> [String] {
        precondition(bytes.count * 8 >= count * bitCount, "each word stands for 11 bits")
        return (0..<count).map { index in
            var number: UInt16 = 0
            for bit in index * bitCount..<(index + 1) * bitCount {
                let isSet = bytes[bit / 8] & (0x80 >> UInt8(bit % 8)) != 0
                number = number << 1 | (isSet ? 1 : 0)
            }
            return word(number)
        }
    }
}
