import Foundation
import HTTPCore
import Testing

@testable import SalternServer

@Suite struct UseridTests {
    @Test(arguments: [
        "ada@example.org", "a", "a b", "ada+tag@example.org", "straße", "ålice", "日本", "ş", "ά",
        String(repeating: "a", count: 254), String(repeating: "é", count: 127),
    ])
    func `a canonical userid is taken as it is`(_ text: String) throws {
        #expect(try Userid(text).string == text)
    }

    @Test(arguments: [
        ("Ada", "ada"), (" ada", "ada"), ("ada ", "ada"), ("\u{00A0}ada\u{3000}", "ada"), ("ÅLICE", "ålice"),
        ("a\u{030A}lice", "ålice"), ("\u{FB01}sh", "fish"), ("\u{FF21}da", "ada"), ("①", "1"),
        ("\u{2160}", "i"), ("\u{1E9E}", "ß"), ("İ", "i\u{307}"), ("Σ", "σ"), ("\u{212B}", "å"), ("ﬀ ", "ff"),
        ("ada\n", "ada"), ("\tada", "ada"), ("ΌΣΟΣ", "όσος"), ("ΣΑΣ.ΣΑΣ ΣΑΣ", "σασ.σας σας"),
    ])
    func `another form is refused with the canonical one`(_ text: String, _ canonical: String) throws {
        let refusal = #expect(throws: Userid.Refusal.self) { try Userid(text) }
        #expect(refusal == .notCanonical(canonical))
        // What is proposed would be accepted.
        #expect(try Userid(canonical).string == canonical)
    }

    @Test(arguments: [
        "", " ", "\u{3000}", "a\u{0}b", "a\nb", "a\u{7F}", "a\u{85}b", "a\u{2028}b", "a\u{378}b", "a\u{FFFF}",
        "user\u{200D}x", "a\u{200B}b", "\u{FEFF}ada", "a\u{AD}b", "a\u{FE0F}", "a\u{3164}", "a\u{2800}", "a\u{E0061}",
        String(repeating: "a", count: 255), String(repeating: "é", count: 128),
        String(repeating: "\u{FDFA}", count: 30_000),
    ])
    func `what can be no userid is refused`(_ text: String) {
        #expect(throws: Userid.Refusal.invalid) { try Userid(text) }
    }

    @Test(arguments: ["\n", "\r\n", " ", "\u{A0}", "\t \n"])
    func `white space around a blinded userid leads to that userid, and not to one in lower case`(_ space: String) {
        let blinded = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWY="
        for text in [blinded + space, space + blinded, space + blinded + space] {
            #expect(throws: Userid.Refusal.notCanonical(blinded)) { try Userid(text) }
        }
    }

    @Test func `a blinded userid is taken as it is, in upper case too`() throws {
        let blinded = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWY="
        #expect(try Userid(blinded).string == blinded)
        // One bit beyond the last byte makes it an ordinary userid in the wrong case.
        let notCanonical = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZ="
        #expect(throws: Userid.Refusal.notCanonical(notCanonical.lowercased())) { try Userid(notCanonical) }
    }

    @Test func `the canonical form of the canonical form is itself`() {
        for value in (0x20...0x2FFFF as ClosedRange<UInt32>) {
            guard let scalar = Unicode.Scalar(value), scalar.properties.generalCategory != .unassigned else { continue }
            let form = Userid.canonicalForm(of: "a\(scalar)b")
            #expect(Userid.canonicalForm(of: form).utf8.elementsEqual(form.utf8), "U+\(String(value, radix: 16))")
        }
    }

    private struct Example: Decodable {
        let text: String
        /// Nil for what can be no userid.
        let canonical: String?
    }

    /// The same examples are put to Python, JavaScript and a live server: Tests/Integration/userids.sh.
    @Test func `names mean what they mean in other languages`() throws {
        let file = URL(filePath: #filePath).appending(path: "../../../../Integration/userids.json").standardized
        let examples = try JSONDecoder().decode([Example].self, from: Data(contentsOf: file))
        #expect(examples.count >= 40)
        for example in examples {
            var canonical: String?
            do throws(Userid.Refusal) {
                canonical = try Userid(example.text).string
            } catch {
                if case .notCanonical(let form) = error { canonical = form }
            }
            #expect(canonical.map { Array($0.utf8) } == example.canonical.map { Array($0.utf8) }, "\(example)")
        }
    }

    @Test func `the proposed form is shown to the client`() {
        let problem = Userid.Refusal.notCanonical("ada").problem
        #expect(problem.code == "userid_not_canonical")
        #expect(problem.members.map(\.name) == ["canonical"])
    }
}
