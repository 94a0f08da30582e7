import Testing

@testable import SalternClient

struct RecoveryCodeTests {
    @Test func `a code is read back however it is typed`() throws {
        for _ in 0..<200 {
            let code = RecoveryCode.random()
            #expect(code.text.count == 29)
            let typed = code.text.lowercased().replacing("0", with: "o").replacing("1", with: "l").replacing(
                "-", with: " ")
            #expect(try #require(RecoveryCode(typed)).characters == code.characters)
        }
    }

    @Test func `every single typing error is noticed, and most swaps`() throws {
        let alphabet = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ")
        let text = Array(RecoveryCode.random().text.filter { $0 != "-" })
        for index in text.indices {
            for character in alphabet where character != text[index] {
                var wrong = text
                wrong[index] = character
                #expect(RecoveryCode(String(wrong)) == nil)
            }
        }
        var unnoticed = 0
        for index in 0..<24 where text[index] != text[index + 1] {
            var wrong = text
            wrong.swapAt(index, index + 1)
            if RecoveryCode(String(wrong)) != nil { unnoticed += 1 }
        }
        #expect(unnoticed <= 2)
        #expect(RecoveryCode(String(text.dropLast())) == nil)
        #expect(RecoveryCode("") == nil)
        #expect(RecoveryCode(String(text) + "U") == nil)
    }

    @Test func `two codes are different, and a code stretches to the same keys each time`() async {
        let code = RecoveryCode.random()
        #expect(code.characters != RecoveryCode.random().characters)
        let first = await code.stretched(by: StretchingRule(saltPrefix: "com.example:"))
        let second = await code.stretched(by: StretchingRule(saltPrefix: "com.example:"))
        #expect(first.passwordKey == second.passwordKey)
        #expect(first.unlockKey == second.unlockKey)
        #expect(first.passwordKey.bytes != first.unlockKey)
    }
}
