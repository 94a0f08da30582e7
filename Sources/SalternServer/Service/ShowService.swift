internal import HTTPCore

/// `GET /v1/service`: returns the parameters that clients need first. The reply is written once at the start.
struct ShowService: OpenEndpoint {
    private let response: Response

    init(_ configuration: ServiceConfiguration) {
        response = .json { writer in
            writer.object { writer in
                writer.member("name", configuration.name)
                if let version = configuration.version { writer.member("version", version) }
                writer.member("saltPrefix", configuration.saltPrefix)
                Self.write(configuration.kdf, to: &writer)
                writer.member("registration", configuration.registration.rawValue)
                Self.write(configuration.items, to: &writer)
                Self.write(configuration.shares, to: &writer)
                Self.write(configuration.pins, to: &writer)
            }
        }
    }

    func respond(to request: Request) async -> Response { response }

    private static func write(_ policy: KDFPolicy, to writer: inout JSONWriter) {
        writer.object("kdf") { writer in
            writer.member("algorithm", KDFPolicy.algorithm)
            writer.member("iterations", policy.defaultIterations)
            writer.member("minimumIterations", policy.minimumIterations)
            writer.member("maximumIterations", KDFPolicy.maximum)
            writer.member("keyLength", KDFPolicy.keyLength)
        }
    }

    private static func write(_ policy: ItemPolicy, to writer: inout JSONWriter) {
        writer.array("formats") { writer in
            for format in policy.formats { writer.string(format.rawValue) }
        }
        writer.object("limits") { writer in
            writer.member("useridBytes", Userid.byteLimit)
            writer.member("keyringBytes", Keyring.byteLimit)
            writer.member("itemRequestBytes", policy.requestLimit)
            writer.member("itemsPerPage", PageSize.limits.upperBound)
            writer.member("changesPerPage", PageSize.limits.upperBound)
            writer.member("batchOperations", WriteBatch.operationLimit)
            writer.member("batchRequestBytes", WriteBatch.requestLimit)
        }
    }

    private static func write(_ policy: SharePolicy, to writer: inout JSONWriter) {
        writer.object("shares") { writer in
            writer.array("formats") { writer in
                for format in SharePolicy.formats { writer.string(format.rawValue) }
            }
            writer.member("anonymous", policy.acceptsAnonymous)
        }
    }

    private static func write(_ pins: PinSet, to writer: inout JSONWriter) {
        writer.object("pins") { writer in
            writer.array("active") { writer in for pin in pins.active { writer.string(pin) } }
            writer.array("backup") { writer in for pin in pins.backup { writer.string(pin) } }
        }
    }
}
