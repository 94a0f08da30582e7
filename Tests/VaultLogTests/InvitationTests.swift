import Cryptography
import SalternTesting
import Testing

@testable import VaultLog

struct InvitationTests {
    private static let server = "https://salt.example:8443"

    /// A vault with an invitation, and all that the inviter makes.
    private struct Scene {
        var vault: TestVault
        let link: InvitationLink
        let secrets: InvitationSecrets
        let content: InvitationContent

        init() throws {
            vault = try TestVault.withPeople()
            let secret = SecureRandom.secureBytes(16)
            secrets = try InvitationSecrets(.random(), secret: secret, code: nil)
            try vault.append(.invite(vault.terms(secrets, .writer)), by: "ben")
            let invitation = try #require(vault.log.invitations[secrets.id])
            link = try #require(InvitationLink(server: InvitationTests.server, invitation, secret: secret))
            content = try InvitationContent(secrets, vaultName: name("Family"), inviter: name("Ben"), vault.key)
        }

        func preview(_ log: MembershipLog? = nil, _ seconds: UInt64? = nil) throws -> InvitationPreview {
            try InvitationPreview(link, secrets, content.preview, log ?? vault.log, at: time(seconds ?? vault.now))
        }
    }

    @Test func `a link comes back from its text`() throws {
        let scene = try Scene()
        let text = scene.link.text
        #expect(text.hasPrefix("https://salt.example:8443/j/") && text.utf8.count == 28 + 22 + 1 + 45)
        for variant in [
            text, "  \(text)\n", text.replacing("https://salt", with: "HTTPS://SALT"),
            text.replacing("#", with: "?utm=1#"), text.replacing("#", with: "/#"),
        ] {
            let link = try InvitationLink(variant)
            #expect(link.text == text)
            #expect(link.id == scene.secrets.id && link.secret == scene.link.secret && link.check == scene.link.check)
            #expect(link.server == Self.server && !link.hasCode)
        }
        #expect("\(scene.link)" == "InvitationLink(redacted)")
    }

    @Test func `other texts are no links`() throws {
        let text = try Scene().link.text
        let address = String(text.prefix { $0 != "#" })
        for wrong in [
            "", "https://", "http" + text.dropFirst(5), text.replacing("/j/", with: "/s/"), "x" + text,
            text.replacing("/j/", with: "/j/0"), text.replacing("salt.example", with: "user@salt.example"),
            text.replacing("salt.example", with: "sált.example"), address + "/x" + text.dropFirst(address.count),
        ] {
            #expect(throws: InvitationLink.Malformation.notALink) { try InvitationLink(wrong) }
        }
        #expect(throws: InvitationLink.Malformation.noSecret) { try InvitationLink(address) }
        #expect(throws: InvitationLink.Malformation.noSecret) { try InvitationLink(address + "#") }
        for wrong in [
            text + "0", String(text.dropLast()), address + "#3" + text.dropFirst(address.count + 2),
            String(text.dropLast()) + "-", address + "#1" + String(repeating: "z", count: 44),
        ] {
            #expect(throws: InvitationLink.Malformation.brokenSecret) { try InvitationLink(wrong) }
        }
    }

    @Test func `a joiner verifies the log by the link, and gets the key`() throws {
        var scene = try Scene()
        let preview = try scene.preview()
        #expect(preview.vaultName == name("Family") && preview.inviterName == name("Ben"))
        #expect(preview.inviter == scene.vault.id("ben") && preview.terms.role == .writer)
        let eve = MemberID.random()
        let join = try EntryWriter.join(
            scene.secrets, as: eve, named: name("Eve"), .generate(), preview.nameKey, after: scene.vault.log,
            at: time(scene.vault.now))
        try scene.vault.append(join)
        let member = try #require(scene.vault.log.members[eve])
        #expect(member.name.open(of: eve, NameKey(scene.vault.key)) == name("Eve"))
        #expect(member.joined.hash.words.count == 4)
        let key = try preview.openKey(scene.content.sealedKey, scene.secrets, member.nameGeneration, scene.vault.log)
        #expect(key == scene.vault.key)
        // A device that continues an interrupted join does not have the preview any more.
        func reopened(_ sealed: [UInt8], _ number: GenerationNumber) -> GenerationKey? {
            InvitationPreview.openKey(sealed, scene.secrets, number, scene.vault.log)
        }
        #expect(reopened(scene.content.sealedKey, member.nameGeneration) == key)
        #expect(reopened(scene.content.preview, member.nameGeneration) == nil)
        // Of another generation, or with another key of names.
        try scene.vault.rotate(by: "ada")
        let other = try InvitationContent(scene.secrets, vaultName: name("F"), inviter: name("B"), scene.vault.key)
        #expect(throws: InvitationPreview.Failure.wrongKey) {
            try preview.openKey(other.sealedKey, scene.secrets, member.nameGeneration, scene.vault.log)
        }
        #expect(throws: InvitationPreview.Failure.wrongKey) {
            try preview.openKey(
                other.sealedKey, scene.secrets, scene.vault.log.currentGeneration.number, scene.vault.log)
        }
        #expect(reopened(other.sealedKey, member.nameGeneration) == nil)
        #expect(throws: InvitationPreview.Failure.notAuthentic) {
            try preview.openKey(other.preview, scene.secrets, member.nameGeneration, scene.vault.log)
        }
    }

    /// Another holder of the link founds a vault with the same invitation.
    @Test func `a link is of one log`() throws {
        let scene = try Scene()
        var other = try TestVault()
        try other.append(.invite(other.terms(scene.secrets, .writer)), by: "ada")
        #expect(throws: InvitationPreview.Failure.wrongLog) { try scene.preview(other.log) }
        // The log before the invitation.
        let shorter = try MembershipLog(scene.vault.entries.dropLast())
        #expect(throws: InvitationPreview.Failure.wrongLog) { try scene.preview(shorter) }
    }

    @Test func `an invitation that cannot be used is explained`() throws {
        var scene = try Scene()
        #expect(throws: InvitationPreview.Failure.expired) { try scene.preview(nil, scene.vault.now + 7 * 86_400 + 1) }
        let stranger = try InvitationSecrets(scene.secrets.id, secret: SecureRandom.secureBytes(16), code: nil)
        #expect(throws: InvitationPreview.Failure.wrongSecrets) {
            try InvitationPreview(
                scene.link, stranger, scene.content.preview, scene.vault.log, at: time(scene.vault.now))
        }
        #expect(throws: InvitationPreview.Failure.notAuthentic) {
            try InvitationPreview(
                scene.link, scene.secrets, scene.content.sealedKey, scene.vault.log, at: time(scene.vault.now))
        }
        try scene.vault.rotate(by: "ada")
        #expect(throws: InvitationPreview.Failure.closed) { try scene.preview() }
    }

    @Test func `a code changes everything that follows from the secret`() throws {
        let secret = SecureBytes(copying: Array(0..<16) as [UInt8])
        let invitation: InvitationID = id(1)
        let plain = try InvitationSecrets(invitation, secret: secret, code: nil)
        let code = try InvitationCode("abandon ability able about above absent")
        let coded = try InvitationSecrets(invitation, secret: secret, code: code)
        let wrong = try InvitationSecrets(
            invitation, secret: secret, code: InvitationCode("abandon ability able about above absorb"))
        let elsewhere = try InvitationSecrets(id(2), secret: secret, code: nil)
        let all = [plain, coded, wrong, elsewhere]
        #expect(Set(all.map(\.tokenHash)).count == 4)
        #expect(Set(all.map { SHA256.hash($0.previewKey) }).count == 4)
        #expect(Set(all.map { SHA256.hash($0.generationKeyKey) }).count == 4)
        #expect(Set(all.map(\.admissionKey.publicKey)).count == 4)
        #expect(throws: P256.Failure.self) {
            try InvitationSecrets(invitation, secret: SecureRandom.secureBytes(15), code: nil)
        }
    }

    @Test func `a code is read as people type it`() throws {
        let text = secret("abandon ability able about above absent")
        for typed in ["abandon ability able about above absent", " Abandon-ABILITY, able\nabout above. absent "] {
            #expect(try InvitationCode(typed).text == text)
        }
        #expect(throws: InvitationCode.Malformation.wrongCount(0)) { try InvitationCode("") }
        #expect(throws: InvitationCode.Malformation.wrongCount(7)) {
            try InvitationCode("abandon ability able about above absent absorb")
        }
        #expect(throws: InvitationCode.Malformation.unknownWord(position: 3)) {
            try InvitationCode("abandon ability saltern about above absent")
        }
        let drawn = InvitationCode.random().text.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
        #expect(try InvitationCode(drawn).text == secret(drawn))
    }

    @Test func `the list has 2,048 distinct words of three to eight letters`() {
        #expect(CodeWords.all.count == 2_048 && Set(CodeWords.all.map { $0.prefix(4) }).count == 2_048)
        #expect(CodeWords.all == CodeWords.all.sorted())
        #expect(
            CodeWords.all.allSatisfy { (3...8).contains($0.count) && $0.utf8.allSatisfy { (0x61...0x7A).contains($0) } }
        )
        #expect(CodeWords.word(0) == "abandon" && CodeWords.word(2_047) == "zoo" && CodeWords.index(of: "zoo") == 2_047)
        // 00000000 001|00000 000010|00…
        #expect(
            CodeWords.words(in: [0x00, 0x20, 0x08, 0, 0, 0], count: 4) == ["ability", "able", "abandon", "abandon"])
        #expect(CodeWords.words(in: [0xFF, 0xFF, 0xFF], count: 2) == ["zoo", "zoo"])
    }
}
