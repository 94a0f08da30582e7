internal import HTTPCore

/// The member `device: {name?, token?}` of a log-in.
struct DeviceClaim: Sendable {
    var name: DeviceName?
    /// The device token, not yet verified. Nil if it is malformed.
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
