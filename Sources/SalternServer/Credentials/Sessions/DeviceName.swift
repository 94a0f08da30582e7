internal import HTTPCore
internal import Postgres

/// The user's name of a session's device: 1 to 64 characters, none of them a control character.
struct DeviceName: Sendable, Hashable {
    let string: String

    /// Maximum length in bytes of UTF-8, because a Unicode character can be arbitrarily long.
    private static let byteLimit = 256

    init?(_ text: String) {
        guard (1...Self.byteLimit).contains(text.utf8.count), text.unicodeScalars.count <= 64,
            !text.unicodeScalars.contains(where: { $0.properties.generalCategory == .control })
        else { return nil }
        string = text
    }

    init(json: JSONValue) throws(Problem) {
        guard let name = DeviceName(try json.string()) else {
            throw Problem(
                .unprocessableContent, "invalid_device_name",
                detail: "A device name must have 1 to 64 characters and no control characters.", limit: 64)
        }
        self = name
    }

    /// Reads the optional `device: {name}`.
    static func device(from members: inout JSONMembers) throws -> DeviceName? {
        try members.optionalObject("device") { device in try device.required("name", DeviceName.init(json:)) }
    }
}
