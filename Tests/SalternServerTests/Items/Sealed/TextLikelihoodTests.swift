import Cryptography
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct TextLikelihoodTests {
    @Test(arguments: [
        "my password is \0 hunter2hunter2", "login: ada\u{1}secret: correct horse\u{1}",
        "\u{1}\u{2}the safe opens with 4711 and a key", "Benutzer:\u{7F}ada\u{7F}Passwort:\u{7F}geheimnis",
        "пароль\0от\0сейфа двенадцать", "パスワード\0はここにあります\0か", "slt_AbCdEfGhIjKlMnOpQrStUvWxYz0123\0",
        "{\"user\":\"ada\",\"password\":\"correct horse battery\"}\0",
    ])
    func `text with control characters in it is evidence`(_ text: String) {
        #expect(PlaintextEvidenceTests.isRefused(Array(text.utf8)))
        let sealed = SecureRandom.bytes(12) + Array((text + text).utf8) + SecureRandom.bytes(16)
        #expect(PlaintextEvidenceTests.isRefused(sealed, .aes256GCM))
    }

    @Test func `text is evidence whatever comes behind it`() {
        let text = Array("the password of the safe is hunter2".utf8)
        #expect(PlaintextEvidenceTests.isRefused(text + SecureRandom.bytes(1_000)))
        #expect(PlaintextEvidenceTests.isRefused(SecureRandom.bytes(3) + text + SecureRandom.bytes(1_000)))
    }

    @Test func `every byte has a probability, and together they have one`() {
        for model in TextLikelihood.models {
            for table in [model.plain, model.continued] {
                #expect(table.count == 256)
                #expect(table.allSatisfy { $0.isFinite })
                // 256·Q is two to the power of each.
                let sum = table.reduce(0.0) { $0 + Self.power(Double($1)) } / 256
                #expect(abs(sum - 1) < 1e-4)
            }
        }
        // The union over the models stays below 10^-14.
        #expect(Double(TextLikelihood.models.count) * Self.power(-Double(TextLikelihood.evidence)) <= 1e-14)
    }

    @Test func `random bytes of random lengths are not refused`() {
        for _ in 0..<100 * PropertyTests.seeds.count {
            let bytes = SecureRandom.bytes(.random(in: 16...400))
            if bytes.withUnsafeBytes({ TextLikelihood.isFound(in: $0) }) { Issue.record("random bytes were refused") }
        }
    }

    @Test func `short plaintext and ciphertext in any format pass as before`() {
        #expect(!PlaintextEvidenceTests.isRefused(Array("fifteen letters".utf8)))
        for count in [28, 44, 60, 300] {
            #expect(!PlaintextEvidenceTests.isRefused(SecureRandom.bytes(count), .aes256GCM))
        }
    }

    /// 2^x by halving, so that the test does not share the code's arithmetic.
    private static func power(_ exponent: Double) -> Double {
        let whole = exponent.rounded(.down)
        var result = 1.0
        // e^(r·ln 2) as a series.
        var term = 1.0
        for index in 1...30 {
            term *= (exponent - whole) * 0.693147180559945309417 / Double(index)
            result += term
        }
        for _ in 0..<Int(abs(whole)) { result = whole < 0 ? result / 2 : result * 2 }
        return result
    }
}
