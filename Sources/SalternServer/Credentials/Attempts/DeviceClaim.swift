internal import HTTPCore

/// What a log-in says of its device: `device: {name?, token?}`.
struct DeviceClaim: Sendable {
    var name: DeviceName?
    /// What the server gave the device earlier, not yet checked.
    var token: String?

    init(from members: inout JSONMembers) throws {
        let claim = try members.optionalObject("device") { device in
            (
                name: try device.optional("name", DeviceName.init(json:)),
                token: try device.optional("token") { json throws(Problem) in try json.string() }
            )
        }
        name = claim?.name
        token = claim?.token
    }
}
