internal import COpenSSL

/// The supported versions of TLS.
public enum TLSVersion: String, Sendable, Hashable, CaseIterable, Comparable {
    /// RFC 5246, with the AEAD suites only.
    case version12 = "TLSv1.2"
    /// RFC 8446.
    case version13 = "TLSv1.3"

    init?(number: Int32) {
        switch number {
        case TLS1_2_VERSION: self = .version12
        case TLS1_3_VERSION: self = .version13
        default: return nil
        }
    }

    var number: Int32 {
        switch self {
        case .version12: TLS1_2_VERSION
        case .version13: TLS1_3_VERSION
        }
    }

    public static func < (left: TLSVersion, right: TLSVersion) -> Bool { left.number < right.number }
}
