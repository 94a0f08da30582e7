internal import Cryptography
internal import HTTPCore
internal import WebAuthn

/// Reads a credential in the form of a browser's `toJSON()` (WebAuthn Level 3 §5.1). Other members are allowed, because
/// browsers add some.
private struct ClientCredential {
    let id: PasskeyID
    let response: JSONObject

    init(_ json: JSONValue) throws {
        try PRFOutput.refuse(in: json)
        let object = try json.object()
        guard object["type"] == "public-key", let id = try object["id"].map(PasskeyID.init(json:)),
            try object["rawId"].map(PasskeyID.init(json:)) ?? id == id, case .object(let response)? = object["response"]
        else { throw PasskeyProblem.malformed }
        self.id = id
        self.response = response
    }

    func bytes(_ name: String) throws -> [UInt8] {
        guard let bytes = try optionalBytes(name) else { throw PasskeyProblem.malformed }
        return bytes
    }

    func optionalBytes(_ name: String) throws -> [UInt8]? {
        switch response[name] {
        case nil, .null: return nil
        case .string(let text):
            guard let bytes = Base64Text.decodeURL(text) else { throw PasskeyProblem.malformed }
            return bytes
        default: throw PasskeyProblem.malformed
        }
    }
}

/// The response of a registration before its verification.
struct RegistrationResponse: Sendable {
    let id: PasskeyID
    private let clientData: [UInt8]
    private let attestationObject: [UInt8]
    private let algorithm: Int

    init(json: JSONValue) throws {
        let credential = try ClientCredential(json)
        id = credential.id
        clientData = try credential.bytes("clientDataJSON")
        attestationObject = try credential.bytes("attestationObject")
        guard case .integer(let number)? = credential.response["publicKeyAlgorithm"], let number = Int(exactly: number)
        else { throw PasskeyProblem.malformed }
        algorithm = number
    }

    func registration() throws(WebAuthnFailure) -> PasskeyRegistration {
        try PasskeyRegistration(
            credentialID: id.bytes, clientDataJSON: clientData, attestationObject: attestationObject,
            algorithm: algorithm)
    }
}

/// The response of an assertion before its verification.
struct AuthenticationResponse: Sendable {
    let id: PasskeyID
    let userHandle: [UInt8]?
    private let clientData: [UInt8]
    private let authenticatorData: [UInt8]
    private let signature: [UInt8]

    init(json: JSONValue) throws {
        let credential = try ClientCredential(json)
        id = credential.id
        userHandle = try credential.optionalBytes("userHandle")
        clientData = try credential.bytes("clientDataJSON")
        authenticatorData = try credential.bytes("authenticatorData")
        signature = try credential.bytes("signature")
    }

    func assertion() throws(WebAuthnFailure) -> Assertion {
        try Assertion(
            credentialID: id.bytes, clientDataJSON: clientData, authenticatorData: authenticatorData,
            signature: signature, userHandle: userHandle)
    }
}

/// Rejects outputs of the extensions `prf` and `hmac-secret`. An output opens the keyring and belongs to the client.
enum PRFOutput {
    /// - Throws: ``PasskeyProblem/prfOutput`` if `json` contains an output, at any depth.
    static func refuse(in json: JSONValue) throws(PasskeyProblem) {
        guard !isIn(json) else { throw .prfOutput }
    }

    private static func isIn(_ json: JSONValue) -> Bool {
        switch json {
        case .array(let elements): elements.contains(where: isIn)
        case .object(let object): object.members.contains { isOutput($0) || isIn($0.value) }
        default: false
        }
    }

    /// Returns true for the outputs of WebAuthn Level 3 §10.1.4 and CTAP 2.2 §12.7. Inputs and `enabled` are none.
    private static func isOutput(_ member: JSONObject.Member) -> Bool {
        if member.name == "prf" { return has(["results", "first", "second"], member.value) }
        if member.name == "results", case .object = member.value { return has(["first", "second"], member.value) }
        if member.name == "hmacGetSecret" || member.name == "hmac-secret" {
            return has(["output1", "output2"], member.value)
        }
        return false
    }

    /// Returns true if the value has one of the members, or is no object that could have them.
    private static func has(_ names: [String], _ value: JSONValue) -> Bool {
        switch value {
        case .object(let object): names.contains { name in object[name].map { $0 != .null } ?? false }
        case .null, .bool: false
        default: true
        }
    }
}

extension JSONBody {
    /// Reads a body that can contain the response of an authenticator. An output of PRF anywhere in it is rejected
    /// before all other errors but `password`.
    static func readResponse<Value>(_ request: Request, _ read: (inout JSONMembers) throws -> Value) throws -> Value {
        try JSONBody.read(request, refusing: PRFOutput.refuse(in:), read)
    }
}
