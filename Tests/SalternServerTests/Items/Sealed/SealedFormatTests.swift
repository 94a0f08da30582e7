import Cryptography
import HTTPCore
import Testing

@testable import SalternServer

@Suite struct SealedFormatTests {
    @Test(
        arguments: [
            (SealedFormat.rncryptorV3, [3, 0], 64, true), (.rncryptorV3, [3, 0], 80, true),
            (.rncryptorV3, [3, 1], 80, true), (.rncryptorV3, [3, 1], 96, true),
            (.rncryptorV3, [3, 0], 63, false), (.rncryptorV3, [3, 0], 48, false), (.rncryptorV3, [3, 0], 65, false),
            (.rncryptorV3, [3, 1], 64, false), (.rncryptorV3, [3, 1], 81, false), (.rncryptorV3, [3, 2], 80, false),
            (.rncryptorV3, [2, 0], 64, false), (.rncryptorV3, [3], 0, false), (.rncryptorV3, [], 0, false),
            (.aes256GCM, [], 28, true), (.aes256GCM, [], 29, true), (.aes256GCM, [], 27, false),
            (.aes256GCM, [], 0, false),
            (.aes256GCMIV16, [], 32, true), (.aes256GCMIV16, [], 31, false),
            (.opaque, [], 1, true), (.opaque, [], 0, false),
        ] as [(SealedFormat, [UInt8], Int, Bool)])
    func `a format's structure is checked`(
        _ format: SealedFormat, _ header: [UInt8], _ random: Int, _ isAccepted: Bool
    ) {
        let bytes = header + Self.ciphertext(random)
        if isAccepted {
            #expect(throws: Never.self) { try SealedBytes(bytes, format: format) }
        } else {
            #expect(throws: SealedRefusal.malformed(format)) { try SealedBytes(bytes, format: format) }
        }
    }

    @Test func `sealed bytes are base64, wrapped at 64 characters or not at all`() {
        let bytes = Self.ciphertext(100)
        let text = Base64.encodeToString(bytes)
        let wrapped = text.prefix(64) + "\r\n" + text.dropFirst(64).prefix(64) + "\r\n" + text.dropFirst(128)
        for accepted in [text, String(wrapped), String(wrapped) + "\r\n", " " + text + "\r\n\t"] {
            #expect((try? SealedBytes(base64: JSONString(accepted), format: .opaque))?.bytes == bytes)
        }
        let head = String(text.prefix(64))
        let refusals = [head + "\n" + text.dropFirst(64), String(text.dropLast()), head + " " + text.dropFirst(64)]
        for refused in refusals {
            #expect(throws: SealedRefusal.notBase64) {
                try SealedBytes(base64: JSONString(refused), format: .opaque)
            }
        }
    }

    /// Bytes like those of a cipher that are not by accident text when there are few of them.
    static func ciphertext(_ count: Int) -> [UInt8] {
        var bytes = SecureRandom.bytes(count)
        if count > 0 { bytes[count - 1] = 0xFF }
        return bytes
    }
}
