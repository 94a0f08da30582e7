internal import HTTPCore

/// A user's name for a passkey: 1 to 64 characters, none of them a control character.
struct PasskeyName: Sendable {
    let string: String

    init(json: JSONValue) throws {
        // A passkey's name follows the rules of a device's name.
        guard let name = DeviceName(try json.string()) else { throw PasskeyProblem.invalidName }
        string = name.string
    }
}
