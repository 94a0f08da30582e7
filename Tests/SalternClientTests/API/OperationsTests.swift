import Cryptography
import Foundation
import Synchronization
import Testing

@testable import SalternClient

/// The client's methods and openapi.yaml, held against each other in both directions.
struct OperationsTests {
    /// Notes what it is asked for and answers nothing.
    private final class Recorder: HTTPTransport {
        let requests = Mutex<[HTTPRequest]>([])

        func send(_ request: HTTPRequest) async throws(TransportError) -> HTTPReply {
            requests.withLock { $0.append(request) }
            throw .unreachable
        }

        func stream(_ request: HTTPRequest) async throws(TransportError) -> HTTPReplyStream {
            requests.withLock { $0.append(request) }
            throw .unreachable
        }
    }

    private struct Operation: Hashable, CustomStringConvertible {
        let id: String
        let method: String
        let path: String
        var description: String { "\(id): \(method) \(path)" }
    }

    /// Pages and files for browsers and platforms, and routes of services: no client calls them.
    private static let notForClients: Set<String> = [
        "showSharePage", "showInvitationPage", "showSharePageOfLegacyLink", "showSharePageAsset",
        "showAppleAppSiteAssociation", "showAssetLinks", "showKeySet", "showIssuer", "inspectToken",
        "leaseServiceEvents", "confirmServiceEvents",
    ]

    private func described() throws -> Set<Operation> {
        let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../../openapi.yaml")
        let text = try String(contentsOf: file.standardized, encoding: .utf8)
        var operations: Set<Operation> = []
        var path = ""
        var method = ""
        for line in text.split(separator: "\n") {
            if let match = line.wholeMatch(of: #/ {2}(/[^:]*):/#) { path = String(match.1) }
            if let match = line.wholeMatch(of: #/ {4}(get|put|post|patch|delete|head):/#) {
                method = match.1.uppercased()
            }
            if let match = line.wholeMatch(of: #/ {6}operationId: (\S+)/#),
                !Self.notForClients.contains(String(match.1))
            {
                operations.insert(Operation(id: String(match.1), method: method, path: path))
            }
        }
        return operations
    }

    static let token = Token(SecureBytes(copying: Array("slt_x".utf8)))
    private static let secret = SecretBytes(SecureRandom.secureBytes(32))
    private static let content = ItemContent(collection: "notes", format: "saltern-1", body: [1])
    private static let share = ShareContent(format: "aes-256-gcm", salt: [1], iterations: 1, sealed: [1])
    private static let new = NewCredential(
        passwordKey: secret, iterations: 1, keyring: nil, keyringRevision: nil)

    typealias Call = @Sendable (SalternAPI) async throws -> Void

    static let calls: [String: Call] = [
        "describeService": { _ = try await $0.describeService() },
        "checkLiveness": { try await $0.checkLiveness() },
        "checkReadiness": { try await $0.checkReadiness() },
        "getKDFParameters": { _ = try await $0.getKDFParameters(userid: "a") },
        "register": { _ = try await $0.register(userid: "a", passwordKey: secret, iterations: 1, keyring: nil) },
        "getAccount": { _ = try await $0.getAccount(token) },
        "deleteAccount": { try await $0.deleteAccount(currentPasswordKey: secret, token) },
        "changeCredential": { _ = try await $0.changeCredential(new, current: secret, token) },
        "changeUserid": { _ = try await $0.changeUserid("b", new, current: secret, token) },
        "getKeyring": { _ = try await $0.getKeyring(token) },
        "putKeyring": { _ = try await $0.putKeyring([1], .absent, token) },
        "listKeptKeyrings": { _ = try await $0.listKeptKeyrings(token) },
        "putReceipt": { try await $0.putReceipt("r", token) },
        "exportAccount": { _ = try await $0.exportAccount(currentPasswordKey: secret, token) },
        "listEvents": { _ = try await $0.listEvents(token) },
        "setRecovery": {
            try await $0.setRecovery(recoveryKey: secret, keyring: nil, currentPasswordKey: secret, token)
        },
        "removeRecovery": { try await $0.removeRecovery(currentPasswordKey: secret, token) },
        "recover": { _ = try await $0.recover(userid: "a", recoveryKey: secret) },
        "openRotation": { _ = try await $0.openRotation(currentPasswordKey: secret, token) },
        "discardRotation": { try await $0.discardRotation(.random(), token) },
        "stageItems": { _ = try await $0.stageItems([], in: .random(), token) },
        "commitRotation": { _ = try await $0.commitRotation(.random(), new, current: secret, token) },
        "beginPasskey": { _ = try await $0.beginPasskey(logsIn: true, currentPasswordKey: secret, token) },
        "confirmPasskey": {
            let created = PasskeyRegistration(
                id: [1], clientDataJSON: [1], attestationObject: [1], publicKeyAlgorithm: -7)
            _ = try await $0.confirmPasskey(created, name: "a", logsIn: true, currentPasswordKey: secret, token)
        },
        "beginPasskeyAssertion": {
            _ = try await $0.beginPasskeyAssertion(for: .deleteAccount, bodySHA256: [1], token)
        },
        "listPasskeys": { _ = try await $0.listPasskeys(token) },
        "renamePasskey": { _ = try await $0.renamePasskey([1], name: "a", token) },
        "removePasskey": { try await $0.removePasskey([1], currentPasswordKey: secret, token) },
        "putPasskeyBox": {
            try await $0.putPasskeyBox([1], sealedPrivateKey: [1], box: [1], currentPasswordKey: secret, token)
        },
        "beginPasskeyLogIn": { _ = try await $0.beginPasskeyLogIn() },
        "logInWithPasskey": {
            let answer = PasskeyAssertion(
                id: [1], clientDataJSON: [1], authenticatorData: [1], signature: [1], userHandle: nil)
            _ = try await $0.logInWithPasskey(answer)
        },
        "beginTOTP": { _ = try await $0.beginTOTP(currentPasswordKey: secret, token) },
        "endTOTP": { try await $0.endTOTP(currentPasswordKey: secret, token) },
        "confirmTOTP": { _ = try await $0.confirmTOTP("123456", token) },
        "renewRecoveryCodes": { _ = try await $0.renewRecoveryCodes(currentPasswordKey: secret, token) },
        "logIn": { _ = try await $0.logIn(userid: "a", passwordKey: secret) },
        "listSessions": { _ = try await $0.listSessions(token) },
        "endOtherSessions": { _ = try await $0.endOtherSessions(token) },
        "endCurrentSession": { try await $0.endCurrentSession(token) },
        "endSession": { try await $0.endSession(.random(), token) },
        "listItems": { _ = try await $0.listItems(collection: "a b", token) },
        "getItem": { _ = try await $0.getItem(.random(), token) },
        "putItem": { _ = try await $0.putItem(.random(), content, .absent, token) },
        "getItemBody": { _ = try await $0.getItemBody(.random(), token) },
        "putItemBody": { _ = try await $0.putItemBody(.random(), content, .absent, token) },
        "deleteItem": { _ = try await $0.deleteItem(.random(), .present, token) },
        "restoreItem": { _ = try await $0.restoreItem(.random(), .present, token) },
        "listVersions": { _ = try await $0.listVersions(.random(), token) },
        "getVersion": { _ = try await $0.getVersion(.random(), Revision(7), token) },
        "writeBatch": { _ = try await $0.writeBatch([], token) },
        "listChanges": { _ = try await $0.listChanges(token) },
        "streamChanges": { _ = try await $0.streamChanges(token) },
        "createToken": { _ = try await $0.createToken(for: "billing", token) },
        "createShare": { _ = try await $0.createShare(share, token) },
        "listShares": { _ = try await $0.listShares(token) },
        "openShare": { _ = try await $0.openShare("x") },
        "lookAtShare": { _ = try await $0.lookAtShare("x") },
        "replaceShare": { _ = try await $0.replaceShare("x", share, token) },
        "deleteShare": { try await $0.deleteShare("x", token) },
    ]

    @Test func `every operation of the description has its method, and every method its operation`() async throws {
        var called: Set<Operation> = []
        for (id, call) in Self.calls.merging(Self.vaultCalls, uniquingKeysWith: { first, _ in first }) {
            let recorder = Recorder()
            await #expect(throws: APIError.self) { try await call(SalternAPI(recorder)) }
            let requests = recorder.requests.withLock { $0 }
            let request = try #require(requests.first)
            #expect(requests.count == 1)
            called.insert(
                Operation(id: id, method: request.method.rawValue, path: Self.template(request.target)))
        }
        let described = try described()
        #expect(called.subtracting(described).isEmpty)
        #expect(described.subtracting(called).isEmpty)
    }

    private static func template(_ target: String) -> String {
        let parts = target.prefix { $0 != "?" }.split(separator: "/")
        return zip(parts, [""] + parts).map { part, before in
            let isID = UUID(uuidString: String(part)) != nil || part == "x" || part == "AQ"
            if isID { return before == "vaults" ? "{vault}" : "{id}" }
            return part == "7" ? (before == "seals" ? "{number}" : "{revision}") : String(part)
        }.reduce("") { $0 + "/" + $1 }
    }
}
