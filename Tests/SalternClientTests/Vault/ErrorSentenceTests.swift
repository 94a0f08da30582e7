import Foundation
import Testing

@testable import SalternClient

/// Errors that an app shows to a person.
@Suite struct ErrorSentenceTests {
    private static let problem = Problem(
        status: 403, code: "invalid_invite", title: "Invalid invite", detail: "Ask for another one", requestId: nil,
        field: nil, canonical: nil, allowed: nil, used: nil, conflicts: nil, current: nil)

    private static var errors: [any Error] {
        var errors: [any Error] = [
            VaultError.wrongCredentials, VaultError.codeRequired, VaultError.wrongCode, VaultError.locked,
            VaultError.sessionEnded, VaultError.refused(problem), VaultError.unavailable(.unexpectedReply),
            VaultError.untrustworthy(.saltPrefix), VaultError.useridNotCanonical(canonical: "ada"),
            VaultError.keyringUnusable, VaultError.keyringNotRestorable, VaultError.malformedRecoveryCode,
            VaultError.otherAccount, VaultError.unsentEdits(count: 1), VaultError.unsentEdits(count: 2),
            VaultError.deletionsHeld, VaultError.notFound, VaultError.invalidCollection("My Notes"),
            VaultError.invalidDocuments(DocumentFault(line: 7, reason: .noEnd)), VaultError.unreadable,
            VaultError.store(.diskFull), APIError.problem(problem), VaultError.sourceFailed,
            VaultError.missingChunk(.random()), VaultError.damagedChunk(.random()),
            FolderError.unusable, FolderError.holdsStore, FolderError.copy(of: "/a"), FolderError.outdated,
            FolderError.otherCollection("a"), FolderError.nested(in: "/a"), FolderError.vault(.locked),
            FolderError.otherAccount, FolderError.secondFolder(beside: "/a"),
            FolderError.cancelled, ShareAddress.Malformation.noKey, VaultError.wrongPasskey,
            VaultError.passkeyRequired(orCode: true), VaultError.passkeyRequired(orCode: false),
        ]
        let passkeys: [PasskeyError] = [
            .noAuthenticator, .severalAuthenticators, .noPasskey, .exists, .cancelled, .notVerified, .pinLocked,
            .doesNotUnlock, .unconfirmed, .foreignSite, .failed,
        ]
        errors += passkeys.map { VaultError.passkey($0) }
        let transport: [TransportError] = [
            .pinMismatch, .untrustedCertificate, .unreachable, .timedOut, .connectionLost, .unacceptableReply,
            .cancelled,
        ]
        let faults: [ConfigurationFault] = [.address, .pin("sha256//A"), .certificate, .rateLimit, .request, .system]
        errors += (transport + faults.map { .configuration($0) }).map { VaultError.unavailable(.transport($0)) }
        let store: [StoreError] = [
            .inUse, .unusable, .exposedFile(path: "/a", mode: 0o644), .readOnly, .tooNew, .diskFull, .damaged,
        ]
        errors += store.map { VaultError.store($0) }
        let limits: [PlanShortage.Limit] = [.items, .itemBytes, .bytes]
        errors += limits.compactMap { PlanShortage($0, needed: 2, free: 1) }.map { VaultError.noRoom($0) }
        return errors
    }

    @Test func `every error is a sentence of its own, and not its number`() {
        var sentences: Set<String> = []
        for error in Self.errors {
            let sentence = error.localizedDescription
            #expect(sentence.hasSuffix(".") && sentence.first?.isLowercase == false, "\(error)")
            #expect(!sentence.contains("SalternClient") && !sentence.contains("Optional"), "\(error)")
            sentences.insert(sentence)
        }
        #expect(sentences.count > Self.errors.count - 8)
        #expect(Self.problem.code == "invalid_invite")
        #expect(
            VaultError.refused(Self.problem).localizedDescription
                == "The server has rejected it (Invalid invite: Ask for another one).")
    }

    @Test func `a wrong server is told from one that cannot be reached`() {
        for error in [TransportError.pinMismatch, .untrustedCertificate, .configuration(.pin(""))] {
            #expect(error.isAboutTrust && APIError.transport(error).isAboutTrust)
            #expect(VaultError.unavailable(.transport(error)).isAboutTrust)
        }
        #expect(VaultError.untrustworthy(.salt).isAboutTrust)
        for error in [TransportError.unreachable, .timedOut, .connectionLost, .unacceptableReply, .cancelled] {
            #expect(!error.isAboutTrust && !APIError.transport(error).isAboutTrust)
            #expect(!VaultError.unavailable(.transport(error)).isAboutTrust)
            #expect(VaultError.unavailable(.transport(error)).isCancellation == (error == .cancelled))
        }
        for error in [VaultError.locked, .refused(Self.problem), .unavailable(.problem(Self.problem)), .notFound] {
            #expect(!error.isAboutTrust && !error.isCancellation)
        }
    }
}
