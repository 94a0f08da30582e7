import Cryptography
import HTTPCore
import Postgres
import Testing

@testable import SalternServer

@Suite struct SecondFactorCodeTests {
    private func code(_ text: String) throws -> SecondFactorCode {
        try SecondFactorCode(json: .string(JSONString(text)))
    }

    @Test(arguments: [
        "287082", "287 082", " 287-082 ", "2 8 7 0 8 2", "287082\n", "\t287\u{A0}082\r\n", "287\u{2013}082",
        "287\u{2212}082", "２８７０８２",
        "\u{662}\u{668}\u{667}\u{660}\u{668}\u{662}", "\u{200B}287\u{AD}082\u{FEFF}",
        "\u{6F2}\u{6F8}\u{6F7} \u{6F0}\u{6F8}\u{6F2}",
        String(repeating: " ", count: 200) + "287082",
    ])
    func `six digits are a one-time password however they are grouped`(text: String) throws {
        guard case .oneTime(let code) = try code(text) else {
            Issue.record("\(text) is a one-time password")
            return
        }
        #expect(code.text == "287082")
    }

    @Test func `a recovery code is read whatever its case and grouping, and what looks like a letter is one`() throws {
        let account = AccountID.random()
        let original = try #require(SecondFactorRecoveryCode(Array("OIBCDEFGHIJKLMNOPQR2".utf8)))
        #expect(original.text == "OIBC-DEFG-HIJK-LMNO-PQR2")
        for text in [
            original.text, "oibcdefghijklmnopqr2", "oibc defg hijk lmno pqr2", "01BC-DEFG-HIJK-LMN0-PQR2",
            "018CDEFGHIJKLMNOPQR2", "OIBC\u{2013}DEFG\u{2014}HIJK\u{2011}LMNO\u{FF0D}PQR2\n", "ｏｉｂｃDEFGHIJKLMNOPQR２",
            "OIBC\tDEFG\u{A0}HIJK LMNO\r\nPQR2",
        ] {
            guard case .recovery(let code) = try code(text) else {
                Issue.record("\(text) is a recovery code")
                continue
            }
            #expect(code.hash(for: account) == original.hash(for: account), "\(text)")
        }
    }

    @Test(arguments: [
        "", "28708", "2870821", "28708a", "OIBC-DEFG-HIJK-LMNO-PQR", "OIBC-DEFG-HIJK-LMNO-PQR22",
        "OIBC-DEFG-HIJK-LMNO-PQR9", "OIBC_DEFG_HIJK_LMNO_PQR2", "²87082", "287082.", "Ⅱ87082",
        String(repeating: " ", count: 251) + "287082", " \n",
    ])
    func `anything else is refused`(text: String) {
        #expect(throws: MalformedSecondFactorCode.self) { try code(text) }
    }

    @Test func `recovery codes are random, have all digits, and are bound to their account`() {
        let codes = (0..<200).map { _ in SecondFactorRecoveryCode.random() }
        #expect(Set(codes.map(\.text)).count == 200)
        #expect(Set(codes.flatMap { $0.text.utf8 }).count == 33)
        let code = codes[0]
        #expect(code.text.count == 24)
        let account = AccountID.random()
        let hash = code.hash(for: account)
        #expect(hash != code.hash(for: .random()))
        let message = account.uuid.bytes + code.text.utf8.filter { $0 != UInt8(ascii: "-") }
        #expect(hash.digest == SHA256.hash(message))
        #expect(!String(reflecting: code).contains(code.text))
    }
}
