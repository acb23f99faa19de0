//! Whether the test images of an external run are still those that it was made with. Figures need no pixel of them, so nothing
//! else would notice.

use std::path::PathBuf;

use super::record::Stamp;
use super::spec::{ExternalFolder, FILES, TEST, changed};
use crate::data::sha256_of_file;
use crate::error::Result;
use crate::events::silent;

impl ExternalFolder {
    /// Refuses test images that were changed since the folder was made: answers to others have figures of nothing. Their file is
    /// read again only where it is not as it was at `known`. Returns its stamp, to be given the next time; nothing where it
    /// was changed just now, or is not there: the figures need no pixel.
    ///
    /// # Errors
    /// Names the file where it was changed, or cannot be read.
    pub(super) fn check_images(&self, known: Option<Stamp>) -> Result<Option<Stamp>> {
        let path = self.images_file();
        let stamp = Stamp::of(&path);
        if stamp.is_some() && stamp != known {
            let found = sha256_of_file(&path, &mut silent())?;
            if !self.names(FILES[0], &found) {
                return Err(changed(&path, &found));
            }
        }
        Ok(stamp.filter(Stamp::is_settled))
    }

    /// Whether the test images are as they were at `known`, as [`Self::check_images`] returned it: without reading them.
    pub(super) fn has_images(&self, known: Option<Stamp>) -> bool {
        Stamp::of(&self.images_file()) == known
    }

    fn images_file(&self) -> PathBuf {
        self.path.join(TEST).join(FILES[0])
    }
}
