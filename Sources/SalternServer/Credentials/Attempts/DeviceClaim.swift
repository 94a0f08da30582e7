internal import HTTPCore

/// What a log-in says of its device: `device: {name?, token?}`.
struct DeviceClaim: Sendable {
    var name: DeviceName?
    /// What the server gave the device earlier, not yet checked; nil also for what cannot be that.
    var token: DeviceToken?

    init(from members: inout JSONMembers) throws {
        let claim = try members.optionalObject("device") { device in
            (
                name: try device.optional("name", DeviceName.init(json:)),
                token: try device.optional("token") { json throws(Problem) in
                    try json.text().withUTF8(DeviceToken.init)
                }
            )
        }
        name = claim?.name
        token = claim?.token ?? nil
    }
}
