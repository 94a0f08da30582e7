internal import HTTPCore

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
