import SalternServer
import WebAuthn

/// Reads the id and the origins of passkeys.
extension Settings {
    mutating func passkeys() -> RelyingParty? {
        let (idName, originsName) = ("SALTERN_PASSKEYS_RP_ID", "SALTERN_PASSKEYS_ORIGINS")
        let id = text(idName, orNothing: "off")
        let origins = text(originsName, orNothing: "none")
        guard let id else {
            if origins != nil { note("\(originsName) needs \(idName)") }
            return nil
        }
        let listed = Self.elements(of: origins ?? "https://\(id)")
        do throws(RelyingParty.Failure) {
            return try RelyingParty(id: id, origins: Set(listed))
        } catch {
            switch error {
            case .invalidID: refuse(idName, id, mustBe: "off, or a domain name in lower case such as example.org")
            case .noOrigins, .invalidOrigin:
                refuse(
                    originsName, origins ?? "",
                    mustBe: "none, or https origins and android:apk-key-hash:… separated by commas")
            case .foreignOrigin(let origin):
                note("\(originsName) has \(origin), whose host is neither \(id) nor below it")
            }
            return nil
        }
    }
}
