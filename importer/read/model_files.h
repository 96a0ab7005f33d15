// importer/read/model_files.h: the files of a model on the disk.
#ifndef ANEMONE_IMPORTER_READ_MODEL_FILES_H_
#define ANEMONE_IMPORTER_READ_MODEL_FILES_H_

#include <string>
#include <vector>

namespace anemone {

// The model file, then the files of its external data that exist, each once. Only the model file
// if it cannot be read: an import says why.
std::vector<std::string> FilesOfModel(const std::string& path);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_READ_MODEL_FILES_H_
